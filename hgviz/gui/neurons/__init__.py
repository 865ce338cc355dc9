"""The look Neurons: how one row of weights comes about, number by number."""
