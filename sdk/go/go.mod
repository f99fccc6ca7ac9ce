module github.com/opilio/opilio/sdk/go

go 1.24
