module opilio/plugin

go 1.24
