"""Pictures and a page that tell what happened in a run, made from its folder alone."""
