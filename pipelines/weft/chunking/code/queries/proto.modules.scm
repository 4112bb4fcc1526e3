(import path: (_) @module)
