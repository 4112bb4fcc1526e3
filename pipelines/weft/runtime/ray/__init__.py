"""Ray: the cluster, pools of actors, stages of a pipeline."""
