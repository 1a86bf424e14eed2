package tcp

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/internal/auth"
	"github.com/goccl/goccl/internal/simhost"
)

// lonely is a host that nobody answers, and that has a relay.
type lonely struct{ simhost.Host }

func (lonely) Environ() []string {
	return []string{"GOCCL_RELAY=10.0.0.9:1", "GOCCL_SECRET=the secret of a job"}
}

func (lonely) Live() {}

func (lonely) Listen(string) (net.Listener, error) { return net.Listen("tcp", "127.0.0.1:0") }

func (lonely) Dial(ctx context.Context, addr string) (net.Conn, error) {
	if addr == "10.0.0.9:1" {
		return nil, errors.New("the relay is down")
	}
	<-ctx.Done()
	return nil, ctx.Err()
}

// The error of an Open that neither the peer nor the relay has answered says so of both.
func TestNeitherAnswers(t *testing.T) {
	n, err := ListenAt(lonely{}, "job", auth.Given([]byte("the secret of a job")), auth.Plain, netip.MustParseAddr("127.0.0.1"))
	require.NoError(t, err)
	defer n.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	_, err = n.OpenControl(ctx, MakeKey(1, 1, 0, 1), 0, netip.MustParseAddrPort("10.0.0.1:20000"))
	require.ErrorContains(t, err, errSilent.Error()+"; nor through the relay at 10.0.0.9:1: the relay is down")
}
