(call arguments: (argument_list (string (string_content) @module)))
