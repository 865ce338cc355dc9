"""What the maps say: the roles of heads, and all levels composed into one. numpy only."""
