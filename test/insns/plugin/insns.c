// A plugin of QEMU's user-mode emulator that counts the instructions of a program, all threads together, and prints their number
// when it ends. QEMU's own header is not needed: what is used of its interface (version 1, QEMU 4.2 and later) is declared here.

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>

struct qemu_plugin_tb;
typedef struct qemu_info_t qemu_info_t;
enum { INLINE_ADD_U64 };

extern void qemu_plugin_register_vcpu_tb_trans_cb(uint64_t id, void (*f)(uint64_t id, struct qemu_plugin_tb *tb));
extern void qemu_plugin_register_vcpu_tb_exec_inline(struct qemu_plugin_tb *tb, int op, void *to, uint64_t value);
extern size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *tb);
extern void qemu_plugin_register_atexit_cb(uint64_t id, void (*f)(uint64_t id, void *data), void *data);

__attribute__((visibility("default"))) int qemu_plugin_version = 1;

static uint64_t count;

static void translated(uint64_t id, struct qemu_plugin_tb *tb)
{
	(void)id;
	qemu_plugin_register_vcpu_tb_exec_inline(tb, INLINE_ADD_U64, &count, qemu_plugin_tb_n_insns(tb));
}

static void ended(uint64_t id, void *data)
{
	(void)id, (void)data;
	fprintf(stderr, "%" PRIu64 "\n", count);
}

__attribute__((visibility("default"))) int qemu_plugin_install(uint64_t id, const qemu_info_t *info, int argc, char **argv)
{
	(void)info, (void)argc, (void)argv;
	qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
	qemu_plugin_register_atexit_cb(id, ended, NULL);
	return 0;
}
