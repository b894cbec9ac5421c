// cuda.h, with every entry under the name by which the library exports it.
#pragma once

#include <cuda.h>

#ifdef CUDA_API_PER_THREAD_DEFAULT_STREAM
#error \
    "the stand-in names _ptsz entries itself; build it without CUDA_API_PER_THREAD_DEFAULT_STREAM"
#endif

// These names stand for the first version of the entry, too.
#undef cuCtxDestroy
#undef cuDevicePrimaryCtxRelease
#undef cuDevicePrimaryCtxReset
#undef cuDevicePrimaryCtxSetFlags
#undef cuDeviceGetUuid
#undef cuEventElapsedTime
#undef cuGetProcAddress
#undef cuGraphInstantiate
#undef cuIpcOpenMemHandle
#undef cuMemAdvise
#undef cuMemPrefetchAsync
#undef cuStreamBeginCapture
#undef cuStreamGetCaptureInfo
#undef cuThreadExchangeStreamCaptureMode

// Types that older headers lack; a later header's own declarations agree with these.
struct CUctxCreateParams_st;
struct CUgraphEdgeData_st;
struct CUexecAffinityParam_st;
#if CUDA_VERSION < 12000
using CUdriverProcAddressQueryResult = int;
#define CU_GET_PROC_ADDRESS_SUCCESS 0
#define CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND 1
#define CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT 2
#endif

// Entries that older headers do not declare.
extern "C" {
CUresult CUDAAPI cuGetProcAddress_v2(const char* name, void** out, int version, cuuint64_t flags,
                                     CUdriverProcAddressQueryResult* status);
CUresult CUDAAPI cuCtxGetId(CUcontext context, unsigned long long* id);
CUresult CUDAAPI cuCtxRecordEvent(CUcontext context, CUevent event);
}
