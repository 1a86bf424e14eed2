// Included twice by gmpi.c, with HANDLE for the type of a handle, NAME for names of its own, and
// OF for a handle as a number. So every function is called with exactly its own types.

#define GMPI_COMM HANDLE
#define GMPI_TYPE HANDLE
#define GMPI_OP HANDLE
#define GMPI_INFO HANDLE
#define GMPI_ERRHANDLER HANDLE
#define GMPI_REQUEST HANDLE
#define GMPI_USER NAME(user)
#define GMPI_HANDLER NAME(handler)

typedef void NAME(user)(void *, void *, int *, HANDLE *);
typedef void NAME(handler)(HANDLE *, int *, ...);

static struct {
#define F(required, result, name, parameters) result (*name) parameters;
	GMPI_FUNCTIONS(F)
#undef F
#define F(result, name, parameters) result (*name) parameters;
	GMPI_FILE_FUNCTIONS(F)
#undef F
#define G(name, iname, parameters) \
	int (*name) parameters(int, const int *, const int *, ); \
	int (*I##iname) parameters(int, const int *, const int *, , GMPI_REQUEST *); \
	int (*name##_c) parameters(GMPI_COUNT, const GMPI_COUNT *, const GMPI_AINT *, ); \
	int (*I##iname##_c) parameters(GMPI_COUNT, const GMPI_COUNT *, const GMPI_AINT *, , GMPI_REQUEST *);
	GMPI_FORMS(G)
#undef G
} NAME(m);
#define M NAME(m)

static HANDLE NAME(own)[GMPI_TYPES][GMPI_OPS]; // own operators, see own.h
static char NAME(owned)[GMPI_TYPES][GMPI_OPS]; // where there is one
static HANDLE NAME(returns);            // own error handler
static int NAME(all_large);            // all functions have their form with MPI_Count
static const char *NAME(no_files);     // a function of files that is missing

static const char *NAME(load)(void *so) {
#define F(required, result, name, parameters) \
	if (!(M.name = (result (*) parameters)dlsym(so, "MPI_" #name)) && required) return "MPI_" #name;
	GMPI_FUNCTIONS(F)
#undef F
#define G(name, iname, parameters) \
	if (!(*(void **)&M.name = dlsym(so, "MPI_" #name))) return "MPI_" #name; \
	if (!(*(void **)&M.I##iname = dlsym(so, "MPI_I" #iname))) return "MPI_I" #iname; \
	*(void **)&M.name##_c = dlsym(so, "MPI_" #name "_c"); \
	*(void **)&M.I##iname##_c = dlsym(so, "MPI_I" #iname "_c");
	GMPI_FORMS(G)
#undef G
	NAME(no_files) = NULL;
#define F(result, name, parameters) \
	if (!(M.name = (result (*) parameters)dlsym(so, "MPI_" #name))) NAME(no_files) = "MPI_" #name;
	GMPI_FILE_FUNCTIONS(F)
#undef F
	NAME(all_large) = M.Recv_c && M.Irecv_c && M.Sendrecv_c && M.Get_count_c;
#define G(name, iname, parameters) NAME(all_large) = NAME(all_large) && M.name##_c && M.I##iname##_c;
	GMPI_FORMS(G)
#undef G
	return NULL;
}

static void NAME(version)(char *text, int room, int *major, int *minor) {
	char all[GMPI_MAX_LIBRARY_VERSION_STRING + 1] = "";
	int n;
	M.Get_library_version(all, &n);
	snprintf(text, room, "%s", all);
	M.Get_version(major, minor);
}

static int NAME(state)(void) {
	int yes = 0;
	M.Finalized(&yes);
	if (yes) return 2;
	M.Initialized(&yes);
	return yes;
}

// check takes an error's class and text in the same call as the error.
static int NAME(check)(gmpi_call *c, int code) {
	c->code = code;
	if (!code) return 0;
	int n = 0, class = -1;
	char text[GMPI_MAX_ERROR_STRING + 1] = "";
	M.Error_class(code, &class);
	M.Error_string(code, text, &n);
	c->class = neutral(class);
	c->text = (uintptr_t)strdup(text);
	return code;
}

// errors_return does what MPI_ERRORS_RETURN does, whose value is not the standard's (0x143) in Intel
// MPI 2021.19's library of the standard interface: 0x142, the standard's MPI_ERRORS_ABORT.
static void NAME(errors_return)(HANDLE *comm, int *code, ...) { (void)comm, (void)code; }

#define OWN(name) \
	static void NAME(name)(void *in, void *inout, int *n, HANDLE *type) { (void)type; own_##name(in, inout, *n); }
OWN(f16_sum) OWN(f16_prod) OWN(f16_min) OWN(f16_max)
OWN(bf16_sum) OWN(bf16_prod) OWN(bf16_min) OWN(bf16_max)
OWN(u8_sum) OWN(u8_min) OWN(u8_max) OWN(u16_sum) OWN(u16_min) OWN(u16_max)
OWN(u32_min) OWN(u32_max) OWN(u64_min) OWN(u64_max) OWN(placed)
#undef OWN

static int NAME(init)(gmpi_call *c, int level, gmpi_start *start) {
	const intptr_t levels[] = {K.single, K.funneled, K.serialized, K.multiple};
	int got = 0, code;
	M.Initialized(&start->foreign);
	code = start->foreign ? M.Query_thread(&got) : M.Init_thread(NULL, NULL, levels[level], &got);
	if (code) return NAME(check)(c, code);
	for (int i = 0; i < 4; i++)
		if (got >= levels[i]) start->level = i;
	if (got < levels[2]) return 0; // the Go side refuses
	int *max, has = 0;
	if ((code = M.Comm_get_attr((HANDLE)K.world, K.tag_ub, &max, &has))) return NAME(check)(c, code);
	start->max_tag = has ? *max : 32767; // the least that MPI allows
	if (start->foreign) { // World and Self keep the error handlers of the code whose they are
		HANDLE world = (HANDLE)K.comm_null, self = world;
		if ((code = M.Comm_dup((HANDLE)K.world, &world)) || (code = M.Comm_dup((HANDLE)K.self, &self))) return NAME(check)(c, code);
		K.world = OF(world), K.self = OF(self);
	}
	// Errors outside any communicator go to that of Self since MPI 4, to that of World before.
	if (!(code = M.Comm_create_errhandler(NAME(errors_return), &NAME(returns))) &&
		!(code = M.Comm_set_errhandler((HANDLE)K.world, NAME(returns))))
		code = M.Comm_set_errhandler((HANDLE)K.self, NAME(returns));
	// The operators that no library is asked for, by Type: sum, prod, min, max. What one version of one library gets wrong no
	// other is asked for either: a version that nobody has tried may get it wrong, too. TestReductions of test/mpi compares.
	NAME(user) *own[GMPI_TYPES][GMPI_OPS] = {
		[1] = {NAME(u8_sum), NULL, NULL, NULL}, // the sum: SATURATES
		[2] = {NAME(u8_sum), NULL, NAME(u8_min), NAME(u8_max)}, // the sum: SATURATES; the others: SIGNED
		[3] = {NAME(u16_sum), NULL, NULL, NULL}, // the sum: SATURATES
		[4] = {NAME(u16_sum), NULL, NAME(u16_min), NAME(u16_max)}, // the sum: SATURATES; the others: SIGNED
		[6] = {NULL, NULL, NAME(u32_min), NAME(u32_max)}, // SIGNED
		[8] = {NULL, NULL, NAME(u64_min), NAME(u64_max)}, // SIGNED
		[GMPI_FLOAT16] = {NAME(f16_sum), NAME(f16_prod), NAME(f16_min), NAME(f16_max)},
		[GMPI_BFLOAT16] = {NAME(bf16_sum), NAME(bf16_prod), NAME(bf16_min), NAME(bf16_max)},
		[GMPI_PLACED] = {[GMPI_FIRST] = NAME(placed)},
	};
	for (int i = 0; i < GMPI_TYPES; i++)
		for (int j = 0; j < GMPI_OPS && !code; j++)
			if (own[i][j] && !(code = M.Op_create(own[i][j], 1, &NAME(own)[i][j]))) NAME(owned)[i][j] = 1;
	return NAME(check)(c, code);
}

// make_placed makes the type of a key and its place; unplaced frees it.
static int NAME(make_placed)(gmpi_call *c) {
	HANDLE type;
	int code = M.Type_contiguous(2, (HANDLE)K.uint64, &type);
	if (!code && !(code = M.Type_commit(&type))) types[GMPI_PLACED] = OF(type);
	return NAME(check)(c, code);
}

static int NAME(unplaced)(void) {
	HANDLE type = (HANDLE)types[GMPI_PLACED];
	if (!types[GMPI_PLACED]) return 0;
	types[GMPI_PLACED] = 0;
	return M.Type_free(&type);
}

static int NAME(finalize)(gmpi_call *c) {
	int code = NAME(unplaced)();
	return NAME(check)(c, code ? code : M.Finalize());
}

// release frees what init has duplicated.
static int NAME(release)(gmpi_call *c) {
	HANDLE world = (HANDLE)K.world, self = (HANDLE)K.self;
	int code = NAME(unplaced)();
	if (!code) code = M.Comm_free(&self);
	return NAME(check)(c, code ? code : M.Comm_free(&world));
}

static int NAME(abort)(uintptr_t comm, int code) { return M.Abort((HANDLE)comm, code); }
static double NAME(wtime)(void) { return M.Wtime(); }

static int NAME(processor)(gmpi_call *c, char *name) {
	int n;
	return NAME(check)(c, M.Get_processor_name(name, &n));
}

static int NAME(rank)(gmpi_call *c, int *rank, int *size) {
	int code = M.Comm_rank((HANDLE)c->comm, rank);
	return NAME(check)(c, code ? code : M.Comm_size((HANDLE)c->comm, size));
}

static int NAME(comm)(gmpi_call *c, int what, int color, int key, uintptr_t *made) {
	HANDLE of = (HANDLE)c->comm, new = (HANDLE)K.comm_null;
	int code = 0;
	if (color < 0) color = K.undefined;
	switch (what) {
	case GMPI_SPLIT: code = M.Comm_split(of, color, key, &new); break;
	case GMPI_SPLIT_NODE: code = M.Comm_split_type(of, K.shared, key, (HANDLE)K.info_null, &new); break;
	case GMPI_FREE: code = M.Comm_free(&of); break;
	}
	*made = OF(new) == K.comm_null ? 0 : OF(new);
	// MPI says that it is inherited. It costs nothing to make sure.
	if (!code && *made) code = M.Comm_set_errhandler(new, NAME(returns));
	return NAME(check)(c, code);
}

// ended notes what a status says.
static void NAME(ended)(gmpi_call *c, const status *s) {
	if (c->kind != GMPI_KIND_RECV && c->kind != GMPI_KIND_SENDRECV && c->kind != GMPI_KIND_PROBE) return;
	if (c->root == GMPI_NONE) { // MPICH 4.0 leaves a non-blocking one's status alone
		c->source = GMPI_NONE, c->got_tag = GMPI_ANY, c->got = 0;
		return;
	}
	memcpy(&c->source, s->bytes + K.at_source, sizeof c->source);
	memcpy(&c->got_tag, s->bytes + K.at_tag, sizeof c->got_tag);
	HANDLE type = (HANDLE)types[c->type];
	GMPI_COUNT large = 0;
	int small = 0;
	if (M.Get_count_c) M.Get_count_c(s, type, &large);
	else if (M.Get_elements_x) M.Get_elements_x(s, type, &large);
	else M.Get_count(s, type, &small), large = small;
	c->got = large < 0 ? -1 : large; // no whole number of elements: MPI_UNDEFINED
}

// made notes a duplicate. MPI says that it inherits the error handler; it costs nothing to make sure.
static int NAME(made)(gmpi_call *c, HANDLE new) {
	c->got = (int64_t)OF(new);
	return M.Comm_set_errhandler(new, NAME(returns));
}

#include "gmpi_run.h"
#include "gmpi_file.h"

static int NAME(finish)(gmpi_call *c, int code, HANDLE request, int done, const status *s) {
	c->request = OF(request);
	c->done = done;
	if (!code && done) {
		int cancelled = 0;
		if (c->cancelled) M.Test_cancelled(s, &cancelled);
		c->cancelled = cancelled;
		NAME(ended)(c, s);
		if (c->kind == GMPI_KIND_DUP) code = NAME(made)(c, *(HANDLE *)c->vectors);
	}
	return NAME(check)(c, code);
}

static int NAME(test)(gmpi_call *c) {
	HANDLE request = (HANDLE)c->request;
	status s = {0};
	int done = 0, code = M.Test(&request, &done, &s);
	return NAME(finish)(c, code, request, done || code, &s);
}

static int NAME(wait)(gmpi_call *c) {
	HANDLE request = (HANDLE)c->request;
	status s = {0};
	int code = M.Wait(&request, &s);
	return NAME(finish)(c, code, request, 1, &s);
}

static int NAME(cancel)(gmpi_call *c) {
	HANDLE request = (HANDLE)c->request;
	c->cancelled = 1;
	return NAME(check)(c, M.Cancel(&request));
}

#undef M
#undef GMPI_COMM
#undef GMPI_TYPE
#undef GMPI_OP
#undef GMPI_INFO
#undef GMPI_ERRHANDLER
#undef GMPI_REQUEST
#undef GMPI_USER
#undef GMPI_HANDLER
