module broken-links

go 1.24

require opilio/plugin v0.0.0

replace opilio/plugin => ../../../../sdk/go
