//go:build ignore

// Compiles if, and only if, include/gpjrt.h agrees with pjrt_c_api.h: each function's place in the table, and each struct's
// size and fields.
#include <stddef.h>
#include "pjrt_c_api.h"
#include GPJRT

#define ROW(name, place) _Static_assert(offsetof(PJRT_Api, PJRT_##name) == offsetof(struct gp_api, f) + sizeof(void *) * (place), "the place of " #name);
GPJRT_FUNCS(ROW)

#define SAME(ours, theirs) _Static_assert((long)(ours) == (long)(theirs), #ours " is not " #theirs)
SAME(GPJRT_MAJOR, PJRT_API_MAJOR);
SAME(GPJRT_EXTENSION_STREAM, PJRT_Extension_Type_Stream);
SAME(GPJRT_COPIED_DURING_CALL, PJRT_HostBufferSemantics_kImmutableOnlyDuringCall);
SAME(GPJRT_TILED, PJRT_Buffer_MemoryLayout_Type_Tiled);
SAME(GPJRT_STRING, PJRT_NamedValue_kString);
SAME(GPJRT_INT64, PJRT_NamedValue_kInt64);
SAME(GPJRT_INT64S, PJRT_NamedValue_kInt64List);
SAME(GPJRT_FLOAT, PJRT_NamedValue_kFloat);
SAME(GPJRT_BOOL, PJRT_NamedValue_kBool);
SAME(GPJRT_RESOURCE_EXHAUSTED, PJRT_Error_Code_RESOURCE_EXHAUSTED);
SAME(GPJRT_PRED, PJRT_Buffer_Type_PRED);
SAME(GPJRT_S8, PJRT_Buffer_Type_S8);
SAME(GPJRT_S16, PJRT_Buffer_Type_S16);
SAME(GPJRT_S32, PJRT_Buffer_Type_S32);
SAME(GPJRT_S64, PJRT_Buffer_Type_S64);
SAME(GPJRT_U8, PJRT_Buffer_Type_U8);
SAME(GPJRT_U16, PJRT_Buffer_Type_U16);
SAME(GPJRT_U32, PJRT_Buffer_Type_U32);
SAME(GPJRT_U64, PJRT_Buffer_Type_U64);
SAME(GPJRT_F16, PJRT_Buffer_Type_F16);
SAME(GPJRT_F32, PJRT_Buffer_Type_F32);
SAME(GPJRT_F64, PJRT_Buffer_Type_F64);
SAME(GPJRT_BF16, PJRT_Buffer_Type_BF16);
SAME(GPJRT_F8E5M2, PJRT_Buffer_Type_F8E5M2);
SAME(GPJRT_F8E4M3FN, PJRT_Buffer_Type_F8E4M3FN);

#define SIZE(ours, theirs) _Static_assert(sizeof(struct ours) == sizeof(theirs), "the size of " #ours)
#define FIELD(ours, field, theirs, name) _Static_assert(offsetof(struct ours, field) == offsetof(theirs, name), "the place of " #ours "." #field)

SIZE(gp_extension, PJRT_Extension_Base);
FIELD(gp_extension, type, PJRT_Extension_Base, type);
FIELD(gp_extension, next, PJRT_Extension_Base, next);
FIELD(gp_api, version.major, PJRT_Api, pjrt_api_version.major_version);
FIELD(gp_api, version.minor, PJRT_Api, pjrt_api_version.minor_version);

// Those with one object in, and one or two values out.
#define GET(theirs, in, out) FIELD(gp_get, object, theirs, in); FIELD(gp_get, value, theirs, out)
#define GET2(theirs, in, out, count) GET(theirs, in, out); FIELD(gp_get, n, theirs, count)
FIELD(gp_get, object, PJRT_Error_Destroy_Args, error);
GET2(PJRT_Error_Message_Args, error, message, message_size);
GET(PJRT_Error_GetCode_Args, error, code);
FIELD(gp_get, object, PJRT_Event_Destroy_Args, event);
FIELD(gp_get, object, PJRT_Event_Await_Args, event);
FIELD(gp_get, object, PJRT_Client_Destroy_Args, client);
GET2(PJRT_Client_PlatformName_Args, client, platform_name, platform_name_size);
GET2(PJRT_Client_PlatformVersion_Args, client, platform_version, platform_version_size);
GET2(PJRT_Client_AddressableDevices_Args, client, addressable_devices, num_addressable_devices);
GET2(PJRT_DeviceDescription_Kind_Args, device_description, device_kind, device_kind_size);
GET(PJRT_Device_GetDescription_Args, device, device_description);
FIELD(gp_get, object, PJRT_Executable_Destroy_Args, executable);
GET(PJRT_Executable_NumOutputs_Args, executable, num_outputs);
FIELD(gp_get, object, PJRT_LoadedExecutable_Destroy_Args, executable);
GET(PJRT_LoadedExecutable_GetExecutable_Args, loaded_executable, executable);
FIELD(gp_get, object, PJRT_Buffer_Destroy_Args, buffer);
GET(PJRT_Buffer_ReadyEvent_Args, buffer, event);
GET(PJRT_Buffer_UnsafePointer_Args, buffer, buffer_pointer);
FIELD(gp_get, object, PJRT_TopologyDescription_Destroy_Args, topology);

SIZE(gp_type, PJRT_Buffer_ElementType_Args);
FIELD(gp_type, buffer, PJRT_Buffer_ElementType_Args, buffer);
FIELD(gp_type, type, PJRT_Buffer_ElementType_Args, type);
SIZE(gp_dims, PJRT_Buffer_Dimensions_Args);
FIELD(gp_dims, buffer, PJRT_Buffer_Dimensions_Args, buffer);
FIELD(gp_dims, dims, PJRT_Buffer_Dimensions_Args, dims);
FIELD(gp_dims, n, PJRT_Buffer_Dimensions_Args, num_dims);
SIZE(gp_id, PJRT_Device_LocalHardwareId_Args);
FIELD(gp_id, device, PJRT_Device_LocalHardwareId_Args, device);
FIELD(gp_id, id, PJRT_Device_LocalHardwareId_Args, local_hardware_id);

SIZE(gp_option, PJRT_NamedValue);
FIELD(gp_option, name, PJRT_NamedValue, name);
FIELD(gp_option, name_size, PJRT_NamedValue, name_size);
FIELD(gp_option, type, PJRT_NamedValue, type);
FIELD(gp_option, s, PJRT_NamedValue, string_value);
FIELD(gp_option, n, PJRT_NamedValue, value_size);
SIZE(gp_create, PJRT_Client_Create_Args);
FIELD(gp_create, options, PJRT_Client_Create_Args, create_options);
FIELD(gp_create, n, PJRT_Client_Create_Args, num_options);
FIELD(gp_create, client, PJRT_Client_Create_Args, client);
SIZE(gp_program, PJRT_Program);
FIELD(gp_program, code, PJRT_Program, code);
FIELD(gp_program, format, PJRT_Program, format);
SIZE(gp_compile, PJRT_Client_Compile_Args);
FIELD(gp_compile, client, PJRT_Client_Compile_Args, client);
FIELD(gp_compile, program, PJRT_Client_Compile_Args, program);
FIELD(gp_compile, options, PJRT_Client_Compile_Args, compile_options);
FIELD(gp_compile, executable, PJRT_Client_Compile_Args, executable);

SIZE(gp_put, PJRT_Client_BufferFromHostBuffer_Args);
FIELD(gp_put, client, PJRT_Client_BufferFromHostBuffer_Args, client);
FIELD(gp_put, data, PJRT_Client_BufferFromHostBuffer_Args, data);
FIELD(gp_put, type, PJRT_Client_BufferFromHostBuffer_Args, type);
FIELD(gp_put, dims, PJRT_Client_BufferFromHostBuffer_Args, dims);
FIELD(gp_put, num_dims, PJRT_Client_BufferFromHostBuffer_Args, num_dims);
FIELD(gp_put, semantics, PJRT_Client_BufferFromHostBuffer_Args, host_buffer_semantics);
FIELD(gp_put, device, PJRT_Client_BufferFromHostBuffer_Args, device);
FIELD(gp_put, done, PJRT_Client_BufferFromHostBuffer_Args, done_with_host_buffer);
FIELD(gp_put, buffer, PJRT_Client_BufferFromHostBuffer_Args, buffer);
SIZE(gp_view, PJRT_Client_CreateViewOfDeviceBuffer_Args);
FIELD(gp_view, client, PJRT_Client_CreateViewOfDeviceBuffer_Args, client);
FIELD(gp_view, address, PJRT_Client_CreateViewOfDeviceBuffer_Args, device_buffer_ptr);
FIELD(gp_view, dims, PJRT_Client_CreateViewOfDeviceBuffer_Args, dims);
FIELD(gp_view, num_dims, PJRT_Client_CreateViewOfDeviceBuffer_Args, num_dims);
FIELD(gp_view, type, PJRT_Client_CreateViewOfDeviceBuffer_Args, element_type);
FIELD(gp_view, device, PJRT_Client_CreateViewOfDeviceBuffer_Args, device);
FIELD(gp_view, deleted, PJRT_Client_CreateViewOfDeviceBuffer_Args, on_delete_callback);
FIELD(gp_view, stream, PJRT_Client_CreateViewOfDeviceBuffer_Args, stream);
FIELD(gp_view, buffer, PJRT_Client_CreateViewOfDeviceBuffer_Args, buffer);
SIZE(gp_layout, PJRT_Buffer_MemoryLayout);
FIELD(gp_layout, tiled.minor_to_major, PJRT_Buffer_MemoryLayout, tiled.minor_to_major);
FIELD(gp_layout, tiled.n, PJRT_Buffer_MemoryLayout, tiled.minor_to_major_size);
FIELD(gp_layout, type, PJRT_Buffer_MemoryLayout, type);
SIZE(gp_get_host, PJRT_Buffer_ToHostBuffer_Args);
FIELD(gp_get_host, buffer, PJRT_Buffer_ToHostBuffer_Args, src);
FIELD(gp_get_host, layout, PJRT_Buffer_ToHostBuffer_Args, host_layout);
FIELD(gp_get_host, dst, PJRT_Buffer_ToHostBuffer_Args, dst);
FIELD(gp_get_host, n, PJRT_Buffer_ToHostBuffer_Args, dst_size);
FIELD(gp_get_host, event, PJRT_Buffer_ToHostBuffer_Args, event);

SIZE(gp_run_options, PJRT_ExecuteOptions);
FIELD(gp_run_options, launch, PJRT_ExecuteOptions, launch_id);
FIELD(gp_run_options, keep, PJRT_ExecuteOptions, non_donatable_input_indices);
FIELD(gp_run_options, num_keep, PJRT_ExecuteOptions, num_non_donatable_input_indices);
SIZE(gp_run, PJRT_LoadedExecutable_Execute_Args);
FIELD(gp_run, executable, PJRT_LoadedExecutable_Execute_Args, executable);
FIELD(gp_run, options, PJRT_LoadedExecutable_Execute_Args, options);
FIELD(gp_run, args, PJRT_LoadedExecutable_Execute_Args, argument_lists);
FIELD(gp_run, num_devices, PJRT_LoadedExecutable_Execute_Args, num_devices);
FIELD(gp_run, num_args, PJRT_LoadedExecutable_Execute_Args, num_args);
FIELD(gp_run, results, PJRT_LoadedExecutable_Execute_Args, output_lists);
FIELD(gp_run, done, PJRT_LoadedExecutable_Execute_Args, device_complete_events);
FIELD(gp_run, device, PJRT_LoadedExecutable_Execute_Args, execute_device);

SIZE(gp_stats, PJRT_Executable_GetCompiledMemoryStats_Args);
FIELD(gp_stats, executable, PJRT_Executable_GetCompiledMemoryStats_Args, executable);
FIELD(gp_stats, code, PJRT_Executable_GetCompiledMemoryStats_Args, generated_code_size_in_bytes);
FIELD(gp_stats, temp, PJRT_Executable_GetCompiledMemoryStats_Args, temp_size_in_bytes);
FIELD(gp_stats, peak, PJRT_Executable_GetCompiledMemoryStats_Args, peak_memory_in_bytes);
SIZE(gp_memory, PJRT_Device_MemoryStats_Args);
FIELD(gp_memory, device, PJRT_Device_MemoryStats_Args, device);
FIELD(gp_memory, in_use, PJRT_Device_MemoryStats_Args, bytes_in_use);
FIELD(gp_memory, peak.bytes, PJRT_Device_MemoryStats_Args, peak_bytes_in_use);
FIELD(gp_memory, peak.set, PJRT_Device_MemoryStats_Args, peak_bytes_in_use_is_set);
FIELD(gp_memory, limit.bytes, PJRT_Device_MemoryStats_Args, bytes_limit);
FIELD(gp_memory, limit.set, PJRT_Device_MemoryStats_Args, bytes_limit_is_set);
SIZE(gp_save, PJRT_Executable_Serialize_Args);
FIELD(gp_save, bytes, PJRT_Executable_Serialize_Args, serialized_bytes);
FIELD(gp_save, n, PJRT_Executable_Serialize_Args, serialized_bytes_size);
FIELD(gp_save, owner, PJRT_Executable_Serialize_Args, serialized_executable);
FIELD(gp_save, drop, PJRT_Executable_Serialize_Args, serialized_executable_deleter);
SIZE(gp_load, PJRT_Executable_DeserializeAndLoad_Args);
FIELD(gp_load, client, PJRT_Executable_DeserializeAndLoad_Args, client);
FIELD(gp_load, bytes, PJRT_Executable_DeserializeAndLoad_Args, serialized_executable);
FIELD(gp_load, n, PJRT_Executable_DeserializeAndLoad_Args, serialized_executable_size);
FIELD(gp_load, executable, PJRT_Executable_DeserializeAndLoad_Args, loaded_executable);
SIZE(gp_topology, PJRT_TopologyDescription_Create_Args);
FIELD(gp_topology, name, PJRT_TopologyDescription_Create_Args, topology_name);
FIELD(gp_topology, options, PJRT_TopologyDescription_Create_Args, create_options);
FIELD(gp_topology, n, PJRT_TopologyDescription_Create_Args, num_options);
FIELD(gp_topology, topology, PJRT_TopologyDescription_Create_Args, topology);
SIZE(gp_compile_for, PJRT_Compile_Args);
FIELD(gp_compile_for, topology, PJRT_Compile_Args, topology);
FIELD(gp_compile_for, program, PJRT_Compile_Args, program);
FIELD(gp_compile_for, options, PJRT_Compile_Args, compile_options);
FIELD(gp_compile_for, executable, PJRT_Compile_Args, executable);

int main(void) { return 0; }
