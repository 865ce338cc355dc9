"""The look Attribution: where an answer comes from, beside what a head looks at."""
