// Package test checks what is in deploy: the manifests, strictly decoded into the types of the projects that read them.
package test
