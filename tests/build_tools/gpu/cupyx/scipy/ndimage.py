from scipy.ndimage import *  # noqa: F403
