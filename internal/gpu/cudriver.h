// gcu_fill fills t with functions made of the CUDA driver's, from an open libcuda. It returns the name of one that is
// not there, or NULL. There is one driver in a process: it is called once.
#include "../../include/gcu.h"
#include "../../include/gdev.h"

const char *gcu_fill(gdev *t, void *library);
