"""From a query to an explained answer, in four stages: candidates, fusion, rerank, score and assembly."""
