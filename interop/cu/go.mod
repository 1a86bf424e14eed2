module github.com/goccl/goccl/interop/cu

go 1.25.0

require (
	github.com/goccl/goccl v0.3.0
	github.com/stretchr/testify v1.11.1
	gorgonia.org/cu v0.9.6
)

require (
	github.com/davecgh/go-spew v1.1.1 // indirect
	github.com/google/uuid v1.1.1 // indirect
	github.com/pkg/errors v0.9.1 // indirect
	github.com/pmezard/go-difflib v1.0.0 // indirect
	golang.org/x/sys v0.40.0 // indirect
	gopkg.in/yaml.v3 v3.0.1 // indirect
)

replace github.com/goccl/goccl => ../..
