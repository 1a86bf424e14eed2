// A C program whose MPI is in a library that is written in Go.
int job(void);
int main(void) { return job(); }
