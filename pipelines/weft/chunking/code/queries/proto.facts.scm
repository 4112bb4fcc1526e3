(comment) @comment
(rpc (rpc_name) @function @defines)
[(message (message_name) @type @defines) (enum (enum_name) @type @defines) (service (service_name) @type @defines)]
(message_or_enum_type) @mention
(import) @import
