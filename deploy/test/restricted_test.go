package test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	core "k8s.io/api/core/v1"
)

// refused is why a namespace with the "restricted" Pod Security Standard refuses a pod; none if it takes it. It asks for more
// than that in one point: the user's number is in the manifest.
func refused(pod *core.PodSpec) (why []string) {
	no := func(bad bool, text string) {
		if bad {
			why = append(why, text)
		}
	}
	of := pod.SecurityContext
	if of == nil {
		return []string{"no securityContext"}
	}
	no(of.RunAsNonRoot == nil || !*of.RunAsNonRoot, "runAsNonRoot")
	no(of.RunAsUser == nil || *of.RunAsUser == 0, "runAsUser")
	no(of.SeccompProfile == nil || of.SeccompProfile.Type != core.SeccompProfileTypeRuntimeDefault, "seccompProfile")
	no(len(of.Sysctls) > 0, "sysctls")
	no(pod.HostNetwork || pod.HostPID || pod.HostIPC, "the host's namespaces")
	for _, v := range pod.Volumes {
		no(v.EmptyDir == nil && v.Secret == nil && v.ConfigMap == nil, "volume "+v.Name)
	}
	for _, c := range slices.Concat(pod.InitContainers, pod.Containers) {
		s := c.SecurityContext
		if s == nil {
			why = append(why, c.Name+": no securityContext")
			continue
		}
		no(s.AllowPrivilegeEscalation == nil || *s.AllowPrivilegeEscalation, c.Name+": allowPrivilegeEscalation")
		no(s.Capabilities == nil || !slices.Equal(s.Capabilities.Drop, []core.Capability{"ALL"}), c.Name+": capabilities.drop")
		no(s.Capabilities != nil && slices.ContainsFunc(s.Capabilities.Add, func(c core.Capability) bool { return c != "NET_BIND_SERVICE" }), c.Name+": capabilities.add")
		no(s.Privileged != nil && *s.Privileged, c.Name+": privileged")
		no(s.RunAsNonRoot != nil && !*s.RunAsNonRoot, c.Name+": runAsNonRoot")
		no(s.RunAsUser != nil && *s.RunAsUser == 0, c.Name+": runAsUser")
		no(s.ProcMount != nil && *s.ProcMount != core.DefaultProcMount, c.Name+": procMount")
		no(s.SeccompProfile != nil && s.SeccompProfile.Type == core.SeccompProfileTypeUnconfined, c.Name+": seccompProfile")
		for _, p := range c.Ports {
			no(p.HostPort != 0, c.Name+": hostPort")
		}
	}
	return why
}

// imageUser is the user of deploy/Dockerfile's image.
func imageUser(t *testing.T) int {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "Dockerfile"))
	require.NoError(t, err)
	m := regexp.MustCompile(`(?m)^USER (\d+):(\d+)$`).FindStringSubmatch(string(text))
	require.NotNil(t, m, "a number, which Kubernetes can tell from root")
	require.Equal(t, m[1], m[2])
	uid, err := strconv.Atoi(m[1])
	require.NoError(t, err)
	require.NotZero(t, uid)
	return uid
}

// What makes a pod one that is refused is found.
func TestRefused(t *testing.T) {
	yes, no, root := true, false, int64(0)
	for _, tc := range []struct {
		change func(*core.PodSpec)
		want   string
	}{
		{func(p *core.PodSpec) { p.SecurityContext = nil }, "no securityContext"},
		{func(p *core.PodSpec) { p.SecurityContext.RunAsNonRoot = nil }, "runAsNonRoot"},
		{func(p *core.PodSpec) { p.SecurityContext.RunAsUser = &root }, "runAsUser"},
		{func(p *core.PodSpec) { p.SecurityContext.SeccompProfile = nil }, "seccompProfile"},
		{func(p *core.PodSpec) { p.HostNetwork = true }, "the host's namespaces"},
		{func(p *core.PodSpec) {
			p.Volumes = []core.Volume{{Name: "v", VolumeSource: core.VolumeSource{HostPath: &core.HostPathVolumeSource{}}}}
		}, "volume v"},
		{func(p *core.PodSpec) { p.Containers[0].SecurityContext = nil }, "c: no securityContext"},
		{func(p *core.PodSpec) { p.Containers[0].SecurityContext.AllowPrivilegeEscalation = nil }, "c: allowPrivilegeEscalation"},
		{func(p *core.PodSpec) { p.Containers[0].SecurityContext.AllowPrivilegeEscalation = &yes }, "c: allowPrivilegeEscalation"},
		{func(p *core.PodSpec) { p.Containers[0].SecurityContext.Capabilities.Drop = nil }, "c: capabilities.drop"},
		{func(p *core.PodSpec) {
			p.Containers[0].SecurityContext.Capabilities.Add = []core.Capability{"SYS_PTRACE"}
		}, "c: capabilities.add"},
		{func(p *core.PodSpec) { p.Containers[0].SecurityContext.RunAsNonRoot = &no }, "c: runAsNonRoot"},
		{func(p *core.PodSpec) { p.Containers[0].SecurityContext.Privileged = &yes }, "c: privileged"},
		{func(p *core.PodSpec) { p.Containers[0].Ports = []core.ContainerPort{{HostPort: 1}} }, "c: hostPort"},
	} {
		uid := int64(7)
		pod := core.PodSpec{
			SecurityContext: &core.PodSecurityContext{RunAsNonRoot: &yes, RunAsUser: &uid, SeccompProfile: &core.SeccompProfile{Type: core.SeccompProfileTypeRuntimeDefault}},
			Containers: []core.Container{{Name: "c", SecurityContext: &core.SecurityContext{AllowPrivilegeEscalation: &no,
				Capabilities: &core.Capabilities{Drop: []core.Capability{"ALL"}, Add: []core.Capability{"NET_BIND_SERVICE"}}}}},
		}
		require.Empty(t, refused(&pod))
		tc.change(&pod)
		require.Equal(t, []string{tc.want}, refused(&pod))
	}
}
