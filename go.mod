module github.com/goccl/goccl

go 1.25.0

require (
	github.com/NVIDIA/go-nvml v0.13.1-0
	github.com/aclements/go-moremath v0.0.0-20210112150236-f10218a38794
	github.com/santhosh-tekuri/jsonschema/v6 v6.0.3
	github.com/stretchr/testify v1.11.1
	golang.org/x/sys v0.40.0
	golang.org/x/text v0.23.0
)

require (
	github.com/davecgh/go-spew v1.1.1 // indirect
	github.com/pmezard/go-difflib v1.0.0 // indirect
	gopkg.in/yaml.v3 v3.0.1 // indirect
)
