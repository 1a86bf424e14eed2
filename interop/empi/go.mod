module github.com/goccl/goccl/interop/empi

go 1.25.0

require (
	github.com/emer/empi v1.0.22
	github.com/goccl/goccl v0.3.0
	github.com/stretchr/testify v1.11.1
)

require (
	github.com/davecgh/go-spew v1.1.1 // indirect
	github.com/pmezard/go-difflib v1.0.0 // indirect
	golang.org/x/sys v0.40.0 // indirect
	gopkg.in/yaml.v3 v3.0.1 // indirect
)

replace github.com/goccl/goccl => ../..
