package coll

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"github.com/goccl/goccl/bench/internal/prose"
	"github.com/goccl/goccl/internal/files"
)

// Matrix says what alltoallv sends: what rank i sends to rank j, relative to what the
// busiest rank sends or receives, which is the size.
type Matrix struct {
	Name   string
	rows   [][]float64 // nil: drawn
	most   float64     // that a rank sends or receives
	spread float64
}

// most is how many ranks a matrix in a file may have.
const mostRows = 1 << 14

// mostMatrix is how many bytes such a file may have.
const mostMatrix = 4 << 30

// ReadMatrix reads a matrix: a file with a line of numbers for each rank, or spread:F,
// which draws each weight from 1-F to 1+F, 0 <= F < 1, alike on all ranks.
func ReadMatrix(name string) (*Matrix, error) {
	if f, ok := strings.CutPrefix(name, "spread:"); ok {
		spread, err := strconv.ParseFloat(f, 64)
		if err != nil || !(spread >= 0 && spread < 1) {
			return nil, errors.New("a spread is from 0 to less than 1, such as spread:0.5")
		}
		return &Matrix{Name: name, spread: spread}, nil
	}
	file, size, err := files.Open(name, mostMatrix)
	if err != nil {
		return nil, fmt.Errorf("it cannot be read: %w", prose.Cause(err))
	}
	defer file.Close()
	m := &Matrix{Name: name}
	lines := bufio.NewScanner(io.LimitReader(file, size))
	lines.Buffer(nil, 1<<24)
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" || line[0] == '#' {
			continue
		}
		row, err := weights(line)
		switch {
		case err != nil:
			return nil, fmt.Errorf("line %d: %w", n, err)
		case len(m.rows) > 0 && len(row) != len(m.rows[0]):
			return nil, fmt.Errorf("line %d has %d numbers, but the first has %d", n, len(row), len(m.rows[0]))
		case len(m.rows) == mostRows:
			return nil, fmt.Errorf("more than %d lines", mostRows)
		}
		m.rows = append(m.rows, row)
	}
	switch {
	case lines.Err() != nil:
		return nil, lines.Err()
	case len(m.rows) == 0 || len(m.rows) != len(m.rows[0]):
		return nil, errors.New("it is not square: one line of numbers for each rank, as many numbers as lines")
	}
	m.most = heaviest(m.rows)
	return m, nil
}

func weights(line string) ([]float64, error) {
	var row []float64
	sum := 0.0
	for _, word := range strings.FieldsFunc(line,
		func(r rune) bool { return r == ' ' || r == ',' || r == '\t' || r == ';' }) {
		w, err := strconv.ParseFloat(word, 64)
		if err != nil || !(w >= 0) || math.IsInf(w, 0) {
			return nil, fmt.Errorf("%q is not a number of at least 0", word)
		}
		row = append(row, w)
		sum += w
	}
	if !(sum > 0) || math.IsInf(sum, 0) {
		return nil, errors.New("a rank sends nothing; give it at least one number above 0")
	}
	return row, nil
}

// Fits refuses a matrix of another number of ranks.
func (m *Matrix) Fits(ranks int) error {
	if m.rows != nil && len(m.rows) != ranks {
		return fmt.Errorf("-matrix %s: it is for %d ranks, and there are %d", m.Name, len(m.rows), ranks)
	}
	return nil
}

// count is the elements that rank i sends to rank j of ranks, where no rank may send
// or receive more than total.
func (m *Matrix) count(i, j, ranks, total int) int {
	if m.rows == nil {
		w := 1 + m.spread*(2*unit(i, j)-1)
		return int(float64(total) / float64(ranks) * w / (1 + m.spread))
	}
	return int(float64(total) * m.rows[i][j] / m.most)
}

// unit is a number from 0 to 1, drawn for i and j.
func unit(i, j int) float64 { return rand.New(rand.NewPCG(uint64(i), uint64(j))).Float64() }

// heaviest is the largest sum of a row or a column.
func heaviest(rows [][]float64) float64 {
	most := 0.0
	columns := make([]float64, len(rows))
	for _, row := range rows {
		sum := 0.0
		for j, w := range row {
			sum += w
			columns[j] += w
		}
		most = max(most, sum)
	}
	return max(most, slices.Max(columns))
}
