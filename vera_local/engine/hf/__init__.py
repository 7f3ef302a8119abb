"""The transformers library in-process, for machines on which vLLM does not run: CUDA, Apple's MPS, any CPU.

Knows nothing clinical. Importing it loads neither torch nor transformers.
"""

from vera_local.engine.hf.engine import TransformersEngine

__all__ = ["TransformersEngine"]
