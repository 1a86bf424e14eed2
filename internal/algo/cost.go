package algo

import "fmt"

// A Cost is what a schedule costs one rank.
type Cost struct {
	Steps          int
	Messages       int     // sent and received
	Sent, Received float64 // bytes, as a fraction of the vector's
	Peers          int     // distinct ranks talked to: connections
}

// String is one line for people: "14 steps, 28 messages, sends 1.75 and receives 1.75 of the vector, 2 peers".
func (c Cost) String() string {
	return fmt.Sprintf("%d steps, %d messages, sends %.4g and receives %.4g of the vector, %d peers",
		c.Steps, c.Messages, c.Sent, c.Received, c.Peers)
}

// Cost adds up the steps of s: for reports, not for every call.
func (s Schedule) Cost() Cost {
	c := Cost{Steps: s.Steps}
	peers := map[int]struct{}{}
	add := func(ms []Move) (parts int) {
		for _, m := range ms {
			parts += m.Hi - m.Lo
			peers[m.Peer] = struct{}{}
		}
		c.Messages += len(ms)
		return parts
	}
	var st Step
	sent, received := 0, 0
	for k := range s.Steps {
		s.At(k, &st)
		sent += add(st.Send)
		received += add(st.Recv)
	}
	parts := float64(max(s.Parts, 1))
	c.Sent, c.Received, c.Peers = float64(sent)/parts, float64(received)/parts, len(peers)
	return c
}

// Most is the larger of two costs in each respect.
func (c Cost) Most(d Cost) Cost {
	return Cost{
		max(c.Steps, d.Steps), max(c.Messages, d.Messages),
		max(c.Sent, d.Sent), max(c.Received, d.Received), max(c.Peers, d.Peers),
	}
}

// MostCost is the most that algorithm name costs any rank.
func MostCost(name string, k Kind, t Topology, root int) (Cost, error) {
	var most Cost
	for r := range t.Size() {
		s, err := Build(name, k, t, r, root)
		if err != nil {
			return Cost{}, err
		}
		most = most.Most(s.Cost())
	}
	return most, nil
}
