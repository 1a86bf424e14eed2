package imports

import "go/ast"

// public are the packages whose names users read about.
var public = []string{"ccl", "ccl/boot", "ccl/ccltest", "mpi", "gpu", "cuda", "rocm", "xpu", "xla/hlo", "xla/nn", "xla/nn/models",
	"train/amp", "train/ckpt", "train/ckpt/disks", "train/ckpt/pt", "train/ckpt/store", "train/offload", "train/data", "train/data/loader", "train/data/pack", "train/data/bpe", "train/data/chat", "train/data/megatron", "train/data/text", "train/ddp", "train/device", "train/distill", "train/elastic", "train/ep", "train/fit", "train/fit/loop", "train/fit/lora", "train/fit/machine", "train/fit/quant", "train/fit/sample", "train/fit/update", "train/resume", "train/history", "train/history/events", "train/history/grads", "train/history/timeline", "train/mesh", "train/mirror", "train/optim", "train/optim/whole", "train/outer", "train/powersgd", "train/pp", "train/quant", "train/sp", "train/tp", "train/zero"}

// bare are the exported functions, methods, types, constants and variables of a file that no comment tells of.
func bare(file *ast.File) (names []string) {
	for _, decl := range file.Decls {
		switch d := decl.(type) {
		case *ast.FuncDecl:
			of := ""
			if d.Recv != nil {
				if of = receiver(d.Recv.List[0].Type); !ast.IsExported(of) {
					continue
				}
				of += "."
			}
			if d.Name.IsExported() && d.Doc == nil {
				names = append(names, of+d.Name.Name)
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				switch s := spec.(type) {
				case *ast.TypeSpec:
					if s.Name.IsExported() && d.Doc == nil && s.Doc == nil && s.Comment == nil {
						names = append(names, s.Name.Name)
					}
				case *ast.ValueSpec:
					for _, n := range s.Names {
						if n.IsExported() && d.Doc == nil && s.Doc == nil && s.Comment == nil {
							names = append(names, n.Name)
						}
					}
				}
			}
		}
	}
	return names
}

// Each exported name has a comment.
var explained = rule{
	name: "names are explained", dirs: public, alone: true,
	finds: func(s *source, bad func(string)) {
		for _, name := range bare(s.File) {
			bad(s.name + ": " + name)
		}
	},
	planted: map[string]string{"ccl/p.go": "package ccl\n\nfunc F() {}\n\ntype T struct{}\n\nfunc (t *T) M() {}\n\nfunc (t *u) N() {}\n\nvar V, w = 1, 2\n\n// G is told of.\nfunc G() {}\n"},
	want:    []string{"ccl/p.go: F", "ccl/p.go: T", "ccl/p.go: T.M", "ccl/p.go: V"},
}
