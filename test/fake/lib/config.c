// What of a configuration the library reads: parseCommConfig, src/init.cc. It knows the beginning that its version has, and takes
// what is newer than the configuration says it is from its defaults.
#include "ccl.h"

static size_t known(int version) {
	return version < 21700 ? 24 : version < 21800 ? 40 : version < 22700 ? 48 : version < 22800 ? 72 : version < 22900 ? 80 : version < 23000 ? 88
		: version < 23100 ? 96 : sizeof(struct gccl_config);
}

static int wrong(int x, int least, int most) { return x != GCCL_UNDEF_INT && (x < least || x > most); }

static void say(char *out, size_t size, const char *name, int x) {
	size_t n = strlen(out);
	if (x != GCCL_UNDEF_INT)
		snprintf(out + n, size - n, "%s=%d ", name, x);
}

int configured(g_comm c, const g_cfg *config) {
	int version = (int)fake_version(), to = (int)config->version < version ? (int)config->version : version;
	struct gccl_config k;
	memset(&k, 0, sizeof k);
	k.minCTAs = k.maxCTAs = k.trafficClass = k.CTAPolicy = k.launchOrderImplicit = GCCL_UNDEF_INT;
	struct gccl_config undefined = k;
	memcpy(&k, config, config->size < known(version) ? config->size : known(version));
	if (to < 21700)
		k.minCTAs = k.maxCTAs = undefined.minCTAs, k.netName = NULL;
	if (to < 22600)
		k.trafficClass = undefined.trafficClass;
	if (to < 22700)
		k.CTAPolicy = undefined.CTAPolicy, k.commName = NULL;
	if (to < 23100)
		k.launchOrderImplicit = undefined.launchOrderImplicit;
	if (wrong(k.minCTAs, 1, 64) || wrong(k.maxCTAs, 1, 64) || (k.maxCTAs != GCCL_UNDEF_INT && k.minCTAs > k.maxCTAs))
		return warn("Invalid config min/max channels attribute value %d/%d", k.minCTAs, k.maxCTAs), GCCL_INVALID_ARGUMENT;
	if (wrong(k.CTAPolicy, 0, version < 22803 ? 1 : 2))
		return warn("Invalid config policy attribute value %d", k.CTAPolicy), GCCL_INVALID_ARGUMENT;
	char *out = c->config;
	say(out, sizeof c->config, "minCTAs", k.minCTAs);
	say(out, sizeof c->config, "maxCTAs", k.maxCTAs);
	say(out, sizeof c->config, "trafficClass", k.trafficClass);
	say(out, sizeof c->config, "CTAPolicy", k.CTAPolicy);
	say(out, sizeof c->config, "launchOrderImplicit", k.launchOrderImplicit);
	size_t n = strlen(out);
	snprintf(out + n, sizeof c->config - n, "%s%s %s%s", k.netName ? "netName=" : "", k.netName ? k.netName : "",
		k.commName ? "commName=" : "", k.commName ? k.commName : "");
	return 0;
}

// goccl_fake_config is what a communicator was made with.
const char *goccl_fake_config(g_comm c) { return c->config; }
