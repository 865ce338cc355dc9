"""The look Links: what tokens are linked with by the strongest weights of some heads."""
