package environ

import (
	"cmp"
	"fmt"
	"strings"
)

// Table returns a group's variables as a table of Markdown.
func Table(g Group) string {
	var b strings.Builder
	if g == Test {
		b.WriteString("| variable | read by | meaning |\n|---|---|---|\n")
	} else {
		b.WriteString("| variable | value | read by | meaning |\n|---|---|---|---|\n")
	}
	for _, v := range all {
		switch {
		case v.Group != g:
		case g == Test:
			fmt.Fprintf(&b, "| `%s` | %s | %s |\n", v.Name, v.By, cmp.Or(v.Help, "the tests set it for the processes that they start"))
		default:
			fmt.Fprintf(&b, "| `%s` | %s | %s | %s. Default: %s |\n", v.Name, v.Takes, v.By, v.Help, v.Default)
		}
	}
	return b.String()
}

// Insert returns page with its tables as the registry has them: each stands between a comment that
// names its group, <!-- variables: job -->, and the next empty line.
func Insert(page string) (string, error) {
	for _, g := range []Group{Job, Secret, Engine, Library, Bench, Test} {
		mark := fmt.Sprintf("<!-- variables: %s -->\n", g)
		before, after, found := strings.Cut(page, mark)
		if !found {
			return "", fmt.Errorf("the page has no %q", strings.TrimSpace(mark))
		}
		_, after, _ = strings.Cut(after, "\n\n")
		page = before + mark + Table(g) + "\n" + after
	}
	return page, nil
}
