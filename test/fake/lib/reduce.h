#ifndef FAKE_REDUCE_H
#define FAKE_REDUCE_H

extern const int type_size[];
double element(const void *p, int type);                           // as a number
void multiply(char *p, size_t n, int type, double factor);         // in place, of floats
void reduce(char *out, const char *in, size_t stride, int ranks, size_t n, int type, int op);

#endif
