package ckpt

import (
	"encoding/json"
	"fmt"
)

// State is a state that has some of each rank, such as its random numbers, beside that of the job.
// Save takes it in the place of a state, and Load one whose fields are pointers:
//
//	err := ckpt.Save(ctx, c, dir, ckpt.State{Job: progress, Rank: rng}, ts)
//	err = ckpt.Load(ctx, c, dir, ckpt.State{Job: &progress, Rank: &rng}, ts)
type State struct {
	// Job is the state that Save takes without this type: rank 0's counts.
	Job any
	// Rank is this rank's own. It stands in the rank's file, so it goes to no other rank. Load leaves
	// it as it is if another number of ranks has saved, or the rank of this number had none: what one
	// rank drew is of no use to another number of them. A nil has nothing saved or loaded.
	Rank any
}

// stateName is what the state of a rank is called in its file. The tensors there have a # in their names.
const stateName = "state of the rank"

// parts are those of a state.
func parts(state any) (job, rank any) {
	switch s := state.(type) {
	case State:
		return s.Job, s.Rank
	case *State:
		if s != nil {
			return s.Job, s.Rank
		}
		return nil, nil
	}
	return state, nil
}

// split makes JSON of what a rank has for itself.
func split(state any) (job any, own []byte, err error) {
	job, rank := parts(state)
	if rank == nil {
		return job, nil, nil
	}
	if own, err = json.Marshal(rank); err != nil {
		return nil, nil, fmt.Errorf("the state of the rank: %w", err)
	}
	return job, own, nil
}

// frozen is state as it is now. What is no JSON stays, and is refused by Save, which tells all ranks.
func frozen(state any) any {
	job, rank := parts(state)
	return State{frozenPart(job), frozenPart(rank)}
}

func frozenPart(x any) any {
	if x == nil {
		return nil
	}
	if text, err := json.Marshal(x); err == nil {
		return json.RawMessage(text)
	}
	return x
}

// states fills state from the checkpoint src, on one rank of size.
func (ix *index) states(src source, state any, rank, size int) error {
	job, own := parts(state)
	if job != nil && ix.State != nil {
		if err := json.Unmarshal(ix.State, job); err != nil {
			return fmt.Errorf("the state: %w", err)
		}
	}
	if own == nil || len(ix.Own) != size || ix.Own[rank].N == 0 {
		return nil
	}
	p, err := openPart(src, &ix.Files[rank])
	if err != nil {
		return fmt.Errorf("the state of the rank: %w", err)
	}
	defer p.Close()
	text := make([]byte, ix.Own[rank].N)
	if err = p.read(text, ix.Own[rank].At); err == nil {
		err = json.Unmarshal(text, own)
	}
	if err != nil {
		return fmt.Errorf("the state of the rank: %w", err)
	}
	return nil
}
