(function_call arguments: (arguments (string) @module))
