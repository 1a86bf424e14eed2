"""replicas.py: torchft's own tests of its process group for CPUs, with goccl's in the place of gloo's."""
import sys
import unittest

import torchft.process_group_test as theirs

from torch_goccl.torchft import ProcessGroupGoccl

theirs.ProcessGroupGloo = ProcessGroupGoccl


class Apis(unittest.TestCase):
    test_apis = theirs.ProcessGroupTest.test_gloo_apis_0_cpu


class Groups(theirs.NormalGlooMultiPgTest):
    """All collectives, of which gloo has not three; and then again once a replica is lost."""

    def test_all_that_gloo_has_not(self):
        for collective in self.SKIP:
            self._run_parallel(collective)

    def assertRaisesRegex(self, error, text, *args, **kwargs):  # what goccl says where gloo says that a connection is closed
        return super().assertRaisesRegex(error, text + "|rank 2|timeout", *args, **kwargs)


if __name__ == "__main__":
    suite = unittest.TestSuite(unittest.defaultTestLoader.loadTestsFromTestCase(case) for case in (Apis, Groups))
    result = unittest.TextTestRunner(verbosity=2).run(suite)
    sys.exit(not result.wasSuccessful() or result.testsRun < 15)
