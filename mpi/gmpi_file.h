// Part of gmpi_family.h: files. All is moved as bytes: a file has no types of its own here.

// information makes an MPI_Info of c's hints.
static int NAME(information)(const char *hints, HANDLE *info) {
	int code = M.Info_create(info);
	while (!code && *hints) {
		const char *value = hints + strlen(hints) + 1;
		code = M.Info_set(*info, hints, value);
		hints = value + strlen(value) + 1;
	}
	return code;
}

static int NAME(open)(gmpi_file *f) {
	const intptr_t modes[] = {K.mode_read, K.mode_write, K.mode_both, K.mode_create, K.mode_excl, K.mode_delete, K.mode_unique};
	int mode = 0;
	for (int i = 0; i < (int)(sizeof modes / sizeof *modes); i++)
		if (f->mode >> i & 1) mode |= modes[i];
	const char *hints = (const char *)f->hints;
	HANDLE info = (HANDLE)K.info_null;
	pointer file = NULL;
	int code = *hints ? NAME(information)(hints, &info) : 0;
	if (!code) code = M.File_open((HANDLE)f->call.comm, (const char *)f->name, mode, info, &file);
	if (OF(info) != K.info_null) M.Info_free(&info);
	f->file = (uintptr_t)file;
	return code;
}

static int NAME(on_file)(gmpi_file *f) {
	pointer file = (pointer)f->file, memory = (pointer)f->memory;
	HANDLE byte = (HANDLE)K.uint8;
	status s = {0};
	GMPI_OFFSET size = 0;
	int code = 0, got = 0, moved = f->what >= GMPI_FILE_READ;
	switch (f->what) {
	case GMPI_FILE_OPEN: code = NAME(open)(f); break;
	case GMPI_FILE_CLOSE: code = M.File_close(&file); break;
	case GMPI_FILE_GET_SIZE: code = M.File_get_size(file, &size), f->n = size; break;
	case GMPI_FILE_SET_SIZE: code = M.File_set_size(file, f->n); break;
	case GMPI_FILE_SYNC: code = M.File_sync(file); break;
	case GMPI_FILE_READ: code = M.File_read_at(file, f->offset, memory, f->n, byte, &s); break;
	case GMPI_FILE_READ_ALL: code = M.File_read_at_all(file, f->offset, memory, f->n, byte, &s); break;
	case GMPI_FILE_WRITE: code = M.File_write_at(file, f->offset, memory, f->n, byte, &s); break;
	case GMPI_FILE_WRITE_ALL: code = M.File_write_at_all(file, f->offset, memory, f->n, byte, &s); break;
	}
	if (moved) {
		if (!code) M.Get_count(&s, byte, &got);
		f->n = got < 0 ? 0 : got;
	}
	return NAME(check)(&f->call, code);
}
