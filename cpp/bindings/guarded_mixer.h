// The context mixer as Python holds it. Equal-info windows read it.
#pragma once

#include "fastcompress/context_mixer/context_mixer.h"
#include "guarded.h"

namespace fastcompress::bindings {

using GuardedMixer = Guarded<context_mixer::ContextMixer>;

template <>
inline constexpr const char* kPythonName<context_mixer::ContextMixer> = "ContextMixer";

// Binds the windows, a part of the module equal_info.
void bind_windows(py::module_& sub);

}  // namespace fastcompress::bindings
