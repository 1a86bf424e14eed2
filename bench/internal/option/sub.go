package option

import (
	"errors"
	goflag "flag"
	"fmt"
	"io"
	"strings"
)

// ErrHelp asks for a sub-command's usage.
var ErrHelp = goflag.ErrHelp

// ParseSub reads the arguments of a sub-command, with its flags and operands in any
// order, up to "--"; after is what follows that.
func ParseSub(fs *goflag.FlagSet, args []string) (operands, after []string, err error) {
	fs.SetOutput(io.Discard)
	fs.Usage = func() {}
	for i, a := range args {
		if a == "--" {
			args, after = args[:i], args[i+1:]
			break
		}
	}
	for len(args) > 0 {
		arg := args[0]
		name, _, _ := strings.Cut(strings.TrimLeft(arg, "-"), "=")
		switch {
		case !strings.HasPrefix(arg, "-") || arg == "-" || strings.Contains(name, " "):
			operands, args = append(operands, arg), args[1:]
			continue
		case name == "h" || name == "help":
			return nil, nil, ErrHelp
		case fs.Lookup(name) == nil:
			var known []string
			fs.VisitAll(func(f *goflag.Flag) { known = append(known, f.Name) })
			return nil, nil, unknown("-"+name, "flag", near("-", name, known), "-h lists them")
		}
		if err := fs.Parse(args); err != nil {
			return nil, nil, errors.New(strings.Replace(err.Error(), "flag needs an argument: ", "which value? It needs one: ", 1))
		}
		rest := fs.Args()
		if len(rest) == len(args) {
			return nil, nil, fmt.Errorf("%s: no such flag (-h lists them)", arg)
		}
		args = rest
	}
	return operands, after, nil
}

// Flags prints a sub-command's flags, for its usage.
func Flags(fs *goflag.FlagSet) string {
	var b strings.Builder
	fs.VisitAll(func(f *goflag.Flag) {
		value, help := goflag.UnquoteUsage(f)
		lines := wrap(help, 74)
		fmt.Fprintf(&b, "  %-18s %s\n", strings.TrimSpace("-"+f.Name+" "+value), strings.Join(lines, "\n"+strings.Repeat(" ", 21)))
	})
	return b.String()
}
