(class_heritage [(identifier) (member_expression)] @extends)
