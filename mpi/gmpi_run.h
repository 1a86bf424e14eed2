// Part of gmpi_family.h: one call of any kind, made or only started, with counts of either width.

#define ALSO(...) (__VA_ARGS__, &request)
#define FORMS(name, iname, narrow, wide) \
	(c->start ? large ? M.I##iname##_c ALSO wide : M.I##iname ALSO narrow \
	          : large ? M.name##_c wide : M.name narrow)
#define FORM(name, iname, arguments) FORMS(name, iname, arguments, arguments)

// A vector is counts by rank and where the blocks, one after the other, begin.
#define NARROW(v) (const int *)v, (const int *)v + c->size
#define WIDE(v) (const GMPI_COUNT *)v, (const GMPI_AINT *)v + c->size

static void NAME(vector)(int64_t *v, uintptr_t counts, int size, int large) {
	const int64_t *n = (const int64_t *)counts;
	int64_t at = 0;
	for (int i = 0; n && i < size; at += n[i++]) {
		if (large) v[i] = n[i], v[size + i] = at;
		else ((int *)v)[i] = (int)n[i], ((int *)v)[size + i] = (int)at;
	}
}

static int64_t NAME(total)(uintptr_t counts, int size) {
	int64_t sum = 0;
	for (int i = 0; counts && i < size; i++) sum += ((const int64_t *)counts)[i];
	return sum;
}

static int NAME(peer)(int rank) {
	return rank == GMPI_ANY ? (int)K.any_source : rank == GMPI_NONE ? (int)K.proc_null : rank;
}

// whole makes one type of n elements, for a message with more than a count can say. Pieces would not do: a
// message is received as one, whatever else is waiting for one. If MPI refuses a step, nothing is left.
static int NAME(whole)(gmpi_call *c, HANDLE element, int64_t n, HANDLE *made) {
	HANDLE chunk, chunks;
	const int64_t full = n / c->limit, rest = n % c->limit;
	int code = M.Type_contiguous((int)c->limit, element, &chunk);
	if (code) return code;
	code = M.Type_contiguous((int)full, chunk, &chunks);
	M.Type_free(&chunk);
	if (code) return code;
	const int counts[] = {1, (int)rest};
	const GMPI_AINT at[] = {0, full * c->limit * sizes[c->type]};
	const HANDLE of[] = {chunks, element};
	HANDLE all;
	code = M.Type_create_struct(rest ? 2 : 1, counts, at, of, &all);
	M.Type_free(&chunks);
	if (code) return code;
	if ((code = M.Type_commit(&all))) M.Type_free(&all);
	else *made = all;
	return code;
}

static int NAME(run)(gmpi_call *c) {
	const int reduces = c->kind >= GMPI_KIND_REDUCE && c->kind <= GMPI_KIND_REDUCE_SCATTERV || c->kind == GMPI_KIND_EXSCAN;
	const int own = reduces && NAME(owned)[c->type][c->op];
	HANDLE type = (HANDLE)types[c->type], comm = (HANDLE)c->comm, request = (HANDLE)K.request_null;
	HANDLE op = own ? NAME(own)[c->type][c->op] : (HANDLE)ops[c->op];
	const void *src = (const void *)c->src;
	void *dst = (void *)c->dst;
	int64_t n = c->n, m = c->m;
	const int root = c->root, tag = c->tag == GMPI_ANY ? (int)K.any_tag : c->tag;
	const int scatters = c->kind == GMPI_KIND_SCATTER || c->kind == GMPI_KIND_SCATTERV;
	if (c->in_place && scatters) dst = (void *)K.in_place;
	else if (c->in_place) src = (const void *)K.in_place;

	int large = n > c->limit || m > c->limit || NAME(total)(c->dc, c->size) > c->limit || NAME(total)(c->sc, c->size) > c->limit;
	HANDLE sent = type, received = type;
	if (large && !NAME(all_large) && c->kind >= GMPI_KIND_SEND && c->kind <= GMPI_KIND_SENDRECV) {
		int code = 0;
		const int64_t out = c->kind == GMPI_KIND_SEND ? n : m, in = c->kind == GMPI_KIND_SEND ? 0 : n;
		if (out > c->limit && !(code = NAME(whole)(c, type, out, &sent))) *(c->kind == GMPI_KIND_SEND ? &n : &m) = 1;
		if (!code && in > c->limit && !(code = NAME(whole)(c, type, in, &received))) n = 1;
		if (code) {
			if (sent != type) M.Type_free(&sent);
			return NAME(check)(c, code);
		}
		large = 0;
	}
	// An operator of our own counts in ints.
	if (large && (!NAME(all_large) || own)) return c->code = GMPI_TOO_LARGE;

	// A started call reads its vectors until it is complete. Messages have none, and nothing else has types of its own:
	// so what follows may return without them.
	int64_t few[4 * 32], *dv = few;
	if (c->dc && (c->start || c->size > 32)) {
		dv = malloc(4 * (size_t)c->size * sizeof *dv);
		if (!dv) return c->code = GMPI_NO_MEMORY;
		if (c->start) c->vectors = (uintptr_t)dv;
	}
	int64_t *sv = dv + 2 * c->size;
	if (c->dc) NAME(vector)(dv, c->dc, c->size, large);
	if (c->sc) NAME(vector)(sv, c->sc, c->size, large);

	status s = {0};
	int code = 0;
	switch (c->kind) {
	case GMPI_KIND_BARRIER:
		code = c->start ? M.Ibarrier(comm, &request) : M.Barrier(comm);
		break;
	case GMPI_KIND_BCAST:
		code = FORM(Bcast, bcast, (dst, n, type, root, comm));
		break;
	case GMPI_KIND_REDUCE:
		code = FORM(Reduce, reduce, (src, dst, n, type, op, root, comm));
		break;
	case GMPI_KIND_ALLREDUCE:
		code = FORM(Allreduce, allreduce, (src, dst, n, type, op, comm));
		break;
	case GMPI_KIND_SCAN:
		code = FORM(Scan, scan, (src, dst, n, type, op, comm));
		break;
	case GMPI_KIND_EXSCAN:
		code = FORM(Exscan, exscan, (src, dst, n, type, op, comm));
		break;
	case GMPI_KIND_REDUCE_SCATTER:
		code = FORM(Reduce_scatter_block, reduce_scatter_block, (src, dst, n, type, op, comm));
		break;
	case GMPI_KIND_REDUCE_SCATTERV:
		code = FORMS(Reduce_scatter, reduce_scatter, (src, dst, (const int *)dv, type, op, comm),
			(src, dst, (const GMPI_COUNT *)dv, type, op, comm));
		break;
	case GMPI_KIND_GATHER:
		code = FORM(Gather, gather, (src, n, type, dst, n, type, root, comm));
		break;
	case GMPI_KIND_GATHERV:
		code = FORMS(Gatherv, gatherv, (src, n, type, dst, NARROW(dv), type, root, comm),
			(src, n, type, dst, WIDE(dv), type, root, comm));
		break;
	case GMPI_KIND_SCATTER:
		code = FORM(Scatter, scatter, (src, n, type, dst, n, type, root, comm));
		break;
	case GMPI_KIND_SCATTERV:
		code = FORMS(Scatterv, scatterv, (src, NARROW(dv), type, dst, n, type, root, comm),
			(src, WIDE(dv), type, dst, n, type, root, comm));
		break;
	case GMPI_KIND_ALLGATHER:
		code = FORM(Allgather, allgather, (src, n, type, dst, n, type, comm));
		break;
	case GMPI_KIND_ALLGATHERV:
		code = FORMS(Allgatherv, allgatherv, (src, n, type, dst, NARROW(dv), type, comm),
			(src, n, type, dst, WIDE(dv), type, comm));
		break;
	case GMPI_KIND_ALLTOALL:
		code = FORM(Alltoall, alltoall, (src, n, type, dst, n, type, comm));
		break;
	case GMPI_KIND_ALLTOALLV:
		code = FORMS(Alltoallv, alltoallv, (src, NARROW(sv), type, dst, NARROW(dv), type, comm),
			(src, WIDE(sv), type, dst, WIDE(dv), type, comm));
		break;
	case GMPI_KIND_SEND:
		code = FORM(Send, send, (src, n, sent, NAME(peer)(c->to), tag, comm));
		break;
	case GMPI_KIND_RECV:
		if (c->start) {
			code = large ? M.Irecv_c(dst, n, received, NAME(peer)(root), tag, comm, &request)
			             : M.Irecv(dst, n, received, NAME(peer)(root), tag, comm, &request);
		} else {
			code = large ? M.Recv_c(dst, n, received, NAME(peer)(root), tag, comm, &s)
			             : M.Recv(dst, n, received, NAME(peer)(root), tag, comm, &s);
		}
		break;
	case GMPI_KIND_SENDRECV: // always made at once: the Go side starts a Send and a Recv
		code = large ? M.Sendrecv_c(src, m, sent, NAME(peer)(c->to), tag, dst, n, received, NAME(peer)(root), tag, comm, &s)
		             : M.Sendrecv(src, m, sent, NAME(peer)(c->to), tag, dst, n, received, NAME(peer)(root), tag, comm, &s);
		break;
	case GMPI_KIND_PROBE: // if it is to be started it asks once, and has no request
		code = c->start ? M.Iprobe(NAME(peer)(root), tag, comm, &c->done, &s) : M.Probe(NAME(peer)(root), tag, comm, &s);
		break;
	case GMPI_KIND_DUP: {
		HANDLE new = (HANDLE)K.comm_null, *made = &new;
		if (c->start) { // written to when it is complete
			if (!(made = malloc(sizeof *made))) return c->code = GMPI_NO_MEMORY;
			c->vectors = (uintptr_t)made;
			code = M.Comm_idup(comm, made, &request);
		} else if (!(code = M.Comm_dup(comm, made))) {
			code = NAME(made)(c, new);
		}
		break;
	}
	}
	if (sent != type) M.Type_free(&sent); // MPI has it as long as it needs it
	if (received != type) M.Type_free(&received);
	if (dv != few && !c->start) free(dv);
	if (c->kind == GMPI_KIND_PROBE) {
		if (!code && (!c->start || c->done)) NAME(ended)(c, &s);
	} else if (c->start) {
		c->request = OF(request);
	} else if (!code && c->kind >= GMPI_KIND_RECV) {
		NAME(ended)(c, &s);
	}
	return NAME(check)(c, code);
}

#undef ALSO
#undef FORMS
#undef FORM
#undef NARROW
#undef WIDE
