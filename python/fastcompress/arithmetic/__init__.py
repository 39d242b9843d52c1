"""Arithmetic coding with integer models."""

from fastcompress.arithmetic.models import AdaptiveFrequencies, ContextMixer

__all__ = ["AdaptiveFrequencies", "ContextMixer"]
