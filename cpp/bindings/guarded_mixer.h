// The context mixer as Python holds it, which windows read, too.
#pragma once

#include "fastcompress/context_mixer/context_mixer.h"
#include "guarded.h"

namespace fastcompress::bindings {

using GuardedMixer = Guarded<context_mixer::ContextMixer>;

template <>
inline constexpr const char* kPythonName<context_mixer::ContextMixer> = "ContextMixer";

}  // namespace fastcompress::bindings
