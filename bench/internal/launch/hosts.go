package launch

import "strconv"

// Hosts names the hosts that n ranks are spread over, in blocks; nil for one, which
// is this one.
func Hosts(n, hosts int) []string {
	if hosts < 2 {
		return nil
	}
	ids := make([]string, n)
	for r := range ids {
		ids[r] = "host-" + strconv.Itoa(r*hosts/n)
	}
	return ids
}
