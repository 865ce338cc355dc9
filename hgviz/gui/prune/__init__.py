"""The Prune page: heads are switched off, and the score follows."""
