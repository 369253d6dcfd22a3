"""What trains, in the order things happen:

- ``settings``: what the loop reads of a config
- ``batches``: in which order and in which batches an epoch sees the examples
- ``learner``: a backbone and an objective as one module
- ``loop``: the one training loop, on Lightning Fabric; ``optimizers`` and ``history`` are its parts

Apart from these: ``features_cache``, the features of a backbone, kept on disk, and ``encoders``, pretrained backbones
that make features of images.
"""
