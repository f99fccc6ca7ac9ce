module tab-tour

go 1.24

require github.com/opilio/opilio/sdk/go v0.0.0

replace github.com/opilio/opilio/sdk/go => ../../../../sdk/go
