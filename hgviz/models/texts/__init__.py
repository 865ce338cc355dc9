"""What models read: tokenizers, prompts, corpora, labelled rows, where segments end."""
