package job

import (
	"errors"
	"flag"
	"fmt"
	"io"

	"github.com/goccl/goccl/internal/files"
)

// Parse reads flags. The error says what to change; for flag.ErrHelp it has printed the flags,
// between the texts before and after. A group is a title and names of flags.
func Parse(f *flag.FlagSet, args []string, out io.Writer, before string, groups [][]string, after string) error {
	f.SetOutput(io.Discard)
	switch err := f.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprint(out, before)
		for _, g := range groups {
			fmt.Fprintf(out, "\n%s:\n", g[0])
			for _, name := range g[1:] {
				x := f.Lookup(name)
				arg, text := flag.UnquoteUsage(x)
				if x.DefValue != "" && x.DefValue != "0" && x.DefValue != "-1" && x.DefValue != "false" {
					text += " (default " + x.DefValue + ")"
				}
				fmt.Fprintf(out, "  %-16s %s\n", "-"+name+" "+arg, text)
			}
		}
		fmt.Fprint(out, after)
		return err
	case err != nil:
		return fmt.Errorf("%w (-h lists the flags)", err)
	case f.NArg() > 0:
		return fmt.Errorf("%q is not a flag (-h lists the flags)", f.Arg(0))
	}
	return nil
}

// AtLeast is an error if one of these flags, which are whole numbers, is less than it must be.
func AtLeast(f *flag.FlagSet, least int, names ...string) error {
	for _, name := range names {
		if is := f.Lookup(name).Value.(flag.Getter).Get().(int); is < least {
			return fmt.Errorf("-%s %d: it must be at least %d", name, is, least)
		}
	}
	return nil
}

// AtMost is an error if one of these flags, which are whole numbers, is greater than it may be.
func AtMost(f *flag.FlagSet, most int, names ...string) error {
	for _, name := range names {
		if is := f.Lookup(name).Value.(flag.Getter).Get().(int); is > most {
			return fmt.Errorf("-%s %d: it must be at most %d", name, is, most)
		}
	}
	return nil
}

// Apart is an error if two of these flags, which are names of files or empty, lead to one file: the second would
// overwrite the first.
func Apart(f *flag.FlagSet, names ...string) error {
	for i, name := range names {
		path := f.Lookup(name).Value.String()
		for _, other := range names[:i] {
			if first := f.Lookup(other).Value.String(); path != "" && first != "" && files.Same(first, path) {
				return fmt.Errorf("-%s %s: -%s writes that file; give another name", name, path, other)
			}
		}
	}
	return nil
}
