package doctor

import (
	"net"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTry(t *testing.T) {
	port, done, err := listen()
	require.NoError(t, err)
	defer done()
	conn, err := net.Dial("tcp", net.JoinHostPort("127.0.0.1", port))
	require.NoError(t, err)
	defer conn.Close()
	_, gone, _ := net.SplitHostPort(conn.LocalAddr().String()) // nobody listens there, nor can

	self := meeting{Rank: 0, Host: "h1"}
	routes := try(t.Context(), self, []meeting{
		self, {Rank: 2, Host: "h2", Addrs: []string{"127.0.0.1"}, Port: port}, {Rank: 4, Host: "h3", Addrs: []string{"127.0.0.1"}, Port: gone},
	})
	require.Len(t, routes, 2)
	for _, r := range routes {
		require.Equal(t, "h1", r.From)
		if r.To == "h2" {
			require.Empty(t, r.Error)
			require.Equal(t, "127.0.0.1", r.Via)
		} else {
			require.Contains(t, r.Error, "refused")
			require.NotContains(t, r.Error, gone)
		}
	}
}

// In a large job each host tries so many others, and each route from both ends.
func TestNear(t *testing.T) {
	var all []meeting
	for r := range 1000 {
		all = append(all, meeting{Rank: r * 12})
	}
	tried := map[[2]int]bool{}
	for _, m := range all {
		others := near(m, all)
		require.Len(t, others, neighbours)
		for _, o := range others {
			tried[[2]int{m.Rank, o.Rank}] = true
		}
	}
	for pair := range tried {
		require.True(t, tried[[2]int{pair[1], pair[0]}])
	}
	require.Len(t, near(all[0], all[:3]), 2)
	require.Empty(t, near(meeting{Rank: 5}, all))
}
