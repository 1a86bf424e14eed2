package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

const before = "# Measured\n\nBy hand.\n\n## a\n\n3 interleaved rounds, 1 May 2026, commit 0000001, x\n\n```\nold\n```\n\n## by hand\n\nstays\n"

func TestPage(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "page.md")
	p := &page{path: path}
	p.parse(before)
	require.Equal(t, before, p.String(), "what is read is what was written")

	require.True(t, p.has("a", 3, "0000001"))
	require.False(t, p.has("a", 4, "0000001"), "more rounds are asked for")
	require.False(t, p.has("a", 3, "0000002"), "another commit")
	require.False(t, p.has("b", 1, "0000001"))

	require.NoError(t, p.keep("a", "new\n", 5, "0000002"))
	require.NoError(t, p.keep("b", "first\n", 1, "0000002"))
	require.True(t, p.has("a", 5, "0000002"))
	require.True(t, p.has("b", 1, "0000002"))
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	var again page
	again.parse(string(text))
	require.Equal(t, "# Measured\n\nBy hand.\n", again.head)
	require.Equal(t, []string{"a", "by hand", "b"}, []string{again.all[0].name, again.all[1].name, again.all[2].name})
	require.Contains(t, again.all[0].text, "```\nnew\n```\n")
	require.NotContains(t, string(text), "old")
	require.Equal(t, "\nstays\n", again.all[1].text)
}

func TestOpenPage(t *testing.T) {
	p, err := openPage(t.TempDir())
	require.NoError(t, err)
	require.Equal(t, "# Measured on CPUs of "+maker()+"\n", p.head)
	_, err = openPage(filepath.Join(t.TempDir(), "none"))
	require.NoError(t, err)
}
