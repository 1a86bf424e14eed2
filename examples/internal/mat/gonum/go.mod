module github.com/goccl/goccl/examples/internal/mat/gonum

go 1.25.0

require (
	github.com/goccl/goccl v0.0.0
	gonum.org/v1/gonum v0.17.0
)

require golang.org/x/sys v0.40.0 // indirect

replace github.com/goccl/goccl => ../../../..
