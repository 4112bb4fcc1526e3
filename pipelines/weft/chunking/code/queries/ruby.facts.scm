(comment) @comment
[(method name: (_) @function @defines) (singleton_method name: (_) @function @defines)]
[(class name: (_) @type @defines) (module name: (_) @type @defines)]
(call method: (_) @invoked)
(superclass (_) @extends)
(constant) @mention
((call !receiver method: (identifier) @_require) @import (#any-of? @_require "require" "require_relative" "load"))
