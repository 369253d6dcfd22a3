"""A run as one ONNX graph: columns or pixels in, scores, probabilities and sets out."""
