// Compiles only where include/goneccl.h agrees with oneCCL's own header: every function of the table, by its type,
// every enum and every size. conform.sh defines HAVE_oneccl<name> for the functions that the header declares.
#include <type_traits>

#include <oneapi/ccl.h>

#define GONECCL_VENDOR_TYPES
typedef onecclResult_t o_res;
typedef onecclDataType_t o_dtype;
typedef onecclRedOp_t o_op;
typedef onecclComm_t o_comm;
typedef onecclUniqueId o_uid;
#include "goneccl.h"

// HAS(name) is 1 where HAVE_oneccl<name> is defined as 1.
#define SECOND(a, b, ...) b
#define PLACE_1 0,
#define HAS3(x) SECOND(x 1, 0, 0)
#define HAS2(v) HAS3(PLACE_##v)
#define HAS(x) HAS2(x)
#define JOIN2(a, b) a##b
#define JOIN(a, b) JOIN2(a, b)
#define ROW_0(req, ret, fn, params) static_assert(!req, #fn " is required, but the header does not declare it");
#define ROW_1(req, ret, fn, params) \
	static_assert(std::is_same<decltype(&fn), ret(*) params>::value, "goneccl.h has " #fn " differently from the header");
#define ROW(req, ret, name, params) JOIN(ROW_, HAS(HAVE_oneccl##name))(req, ret, oneccl##name, params)
extern "C" {
GONECCL_FUNCS(ROW)
}

#define SAME(a, b) static_assert(static_cast<long>(a) == static_cast<long>(b), #a " is not " #b)
SAME(onecclInt8, GONECCL_INT8);
SAME(onecclUint8, GONECCL_UINT8);
SAME(onecclInt32, GONECCL_INT32);
SAME(onecclUint32, GONECCL_UINT32);
SAME(onecclInt64, GONECCL_INT64);
SAME(onecclUint64, GONECCL_UINT64);
SAME(onecclFloat16, GONECCL_FLOAT16);
SAME(onecclFloat32, GONECCL_FLOAT32);
SAME(onecclFloat64, GONECCL_FLOAT64);
SAME(onecclBfloat16, GONECCL_BFLOAT16);
SAME(onecclSum, GONECCL_SUM);
SAME(onecclProd, GONECCL_PROD);
SAME(onecclMax, GONECCL_MAX);
SAME(onecclMin, GONECCL_MIN);
SAME(onecclSuccess, GONECCL_SUCCESS);
SAME(onecclError, GONECCL_ERROR);
SAME(onecclSystemError, GONECCL_SYSTEM);
SAME(onecclInternalError, GONECCL_INTERNAL);
SAME(onecclInvalidArgument, GONECCL_INVALID_ARGUMENT);
SAME(onecclInvalidUsage, GONECCL_INVALID_USAGE);
SAME(onecclInProgress, GONECCL_IN_PROGRESS);
SAME(onecclFailureGPU, GONECCL_FAILURE_GPU);
SAME(onecclFailureCPU, GONECCL_FAILURE_CPU);
SAME(onecclAllocFailureCPU, GONECCL_ALLOC_CPU);
SAME(onecclAllocFailureGPU, GONECCL_ALLOC_GPU);
SAME(onecclPluginException, GONECCL_PLUGIN_EXCEPTION);
SAME(onecclNotImplemented, GONECCL_NOT_IMPLEMENTED);

// What goneccl.h says of types where it has no header: enums of 4 bytes, an id of 4,096 bytes passed by value.
static_assert(sizeof(onecclResult_t) == sizeof(int) && sizeof(onecclDataType_t) == sizeof(int) && sizeof(onecclRedOp_t) == sizeof(int), "enums");
static_assert(sizeof(onecclUniqueId) == 4096 && alignof(onecclUniqueId) == 1 && ONECCL_UNIQUE_ID_BYTES == 4096, "the id");
static_assert(std::is_trivially_copyable<onecclUniqueId>::value, "the id");
static_assert(sizeof(onecclComm_t) == sizeof(void *) && std::is_pointer<onecclComm_t>::value, "the communicator");
static_assert(ONECCL_MAJOR * 10000 + ONECCL_MINOR * 100 >= GONECCL_OLDEST, "the header is older than what goccl takes");
